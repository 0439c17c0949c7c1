// Format JavaScript as dprint does: `node format.cjs FILE...` writes the files, with --check it names those that are
// not so.
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { createFromBuffer } = require('@dprint/formatter');
const { getPath } = require('@dprint/typescript');

const formatter = createFromBuffer(readFileSync(getPath()));
formatter.setConfig({ lineWidth: 120, indentWidth: 2, useTabs: false },
  JSON.parse(readFileSync(join(__dirname, 'dprint.json'), 'utf8')));
const faults = formatter.getConfigDiagnostics();
if (faults.length) throw new Error(faults[0].message);

const isCheck = process.argv.includes('--check');
const others = process.argv.slice(2).filter(name => name !== '--check').filter(name => {
  const text = readFileSync(name, 'utf8'), formatted = formatter.formatText({ filePath: name, fileText: text });
  if (formatted !== text && !isCheck) writeFileSync(name, formatted);
  return formatted !== text;
});
for (const name of others) console.log(`${isCheck ? 'not formatted' : 'formatted'}: ${name}`);
process.exitCode = isCheck && others.length ? 1 : 0;
