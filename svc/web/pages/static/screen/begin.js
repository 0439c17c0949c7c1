// The frame of a screen, with the parts that it loads when they are first used: of higher floors, so it gets them here.
import { startFrame } from '../frame/frame.js';

const LATER = {
  palette: () => import('../palette/dialog.js'),
  signIn: () => import('../sign_in/again.js'),
  meant: () => import('../shared/meant.js'),
};

export const beginFrame = ({ refresh }) => startFrame({ refresh, later: LATER });
