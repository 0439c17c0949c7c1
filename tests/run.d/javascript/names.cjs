// The names in JavaScript, as lines FILE:LINE NAME: `node names.cjs FILE...`. Not what strings and comments have.
const { readFileSync } = require('node:fs');
const { tokenize } = require('espree');

for (const file of process.argv.slice(2)) {
  for (
    const token of tokenize(readFileSync(file, 'utf8'), { ecmaVersion: 'latest', sourceType: 'module', loc: true })
  ) {
    if (token.type === 'Identifier') console.log(`${file}:${token.loc.start.line} ${token.value}`);
  }
}
