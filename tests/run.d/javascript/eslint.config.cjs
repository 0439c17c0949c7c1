// The rules of eslint, for all JavaScript of the tree. Its packages are found by NODE_PATH:
// tests/conventions/test_javascript.py.
const js = require('@eslint/js');
const globals = require('globals');

const MODULES = ['svc/web/pages/static/*/*.js'];
const SCRIPTS = ['svc/apps/static/*.js', 'svc/web/pages/static/*.js']; // no modules: they run at once
const BODIES = ['tests/pages/*.js']; // each the body of a function, which the browser's driver calls

const RECOMMENDED = {
  ...js.configs.recommended.rules,
  'no-control-regex': 'off', // logs and file names of others have such characters: these expressions look for them
};

// What the joiner (svc/web/pages/modules.py) takes for indentation or a comment.
const JOINED = [
  { selector: ':matches(TemplateElement[value.raw=/\\n/], Literal[raw=/\\n/])',
    message: 'A string that spans lines loses its indentation.' },
  { selector: ':matches(TemplateElement[value.raw=/\\u002f\\u002a/], Literal[raw=/\\u002f\\u002a/])',
    message: 'A string has the mark of a comment.' },
];

module.exports = [
  { linterOptions: { reportUnusedDisableDirectives: 'error' }, rules: RECOMMENDED },
  { files: MODULES, languageOptions: { sourceType: 'module', globals: globals.browser } },
  { files: MODULES, rules: { 'no-restricted-syntax': ['error', ...JOINED] } },
  { files: SCRIPTS, languageOptions: { sourceType: 'script', globals: globals.browser } },
  { files: BODIES, languageOptions: { sourceType: 'commonjs', globals: globals.browser } },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs', globals: globals.node } },
];
