// The files of a folder whose tokens are not those of the file of that name in another: `node tokens.cjs FOLDER OTHER`.
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { tokenize } = require('espree');

const [, , folder, other] = process.argv;
const tokensOf = path =>
  tokenize(readFileSync(path, 'utf8'), { ecmaVersion: 'latest', sourceType: 'module' }).map(({ type, value }) =>
    `${type} ${value}`
  ).join('\n');

for (const name of readdirSync(folder))
  if (tokensOf(join(folder, name)) !== tokensOf(join(other, name))) console.log(name);
