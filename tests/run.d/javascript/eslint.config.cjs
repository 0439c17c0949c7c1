// The rules of eslint, for all JavaScript of the tree. Its packages are found by NODE_PATH: tests/conventions/test_javascript.py.
const js = require('@eslint/js');
const globals = require('globals');

const MODULES = ['svc/web/pages/static/*/*.js'];
const SCRIPTS = ['svc/web/pages/static/*.js']; // no modules: they run at once
const BODIES = ['tests/browser/*.js']; // each the body of a function, which the browser's driver calls

const RECOMMENDED = {
  ...js.configs.recommended.rules,
  'no-control-regex': 'off', // logs and file names of others have such characters: these expressions look for them
};

module.exports = [
  { linterOptions: { reportUnusedDisableDirectives: 'error' }, rules: RECOMMENDED },
  { files: MODULES, languageOptions: { sourceType: 'module', globals: globals.browser } },
  { files: SCRIPTS, languageOptions: { sourceType: 'script', globals: globals.browser } },
  { files: BODIES, languageOptions: { sourceType: 'commonjs', globals: globals.browser } },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs', globals: globals.node } },
];
