// What a person does to files, loaded when it is done for the first time: dialogs, downloads, and a file's content.
import { askForFolder, askForName, askForPlace, askToRemove } from './dialogs.js';
import { download } from './downloads.js';
import { preview } from './preview.js';

export const actions = { askForFolder, askForName, askForPlace, askToRemove, download, preview };
