// What was chosen or dropped: files, and folders with what is in them, where the browser gives them.

// Resolves to {files: [{file, path}], bare: [paths of folders]}, the paths below where they go.
export async function fromDrop(entries) {
  const found = { files: [], bare: [] };
  for (const entry of entries) {
    if (entry instanceof File) found.files.push({ file: entry, path: entry.name });
    else await walk(entry, '', found);
  }
  return found;
}

export function fromChooser(files) {
  return { files: files.map(file => ({ file, path: file.webkitRelativePath || file.name })), bare: [] };
}

async function walk(entry, above, found) {
  const path = above ? `${above}/${entry.name}` : entry.name;
  if (entry.isFile) {
    found.files.push({ file: await new Promise((resolve, reject) => {
      entry.file(resolve, reject);
    }), path });
    return;
  }
  const reader = entry.createReader();
  let isEmpty = true;
  for (;;) { // a part at a time, until there is none
    const part = await new Promise((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (part.length === 0) break;
    isEmpty = false;
    for (const each of part) await walk(each, path, found);
  }
  if (isEmpty) found.bare.push(path);
}
