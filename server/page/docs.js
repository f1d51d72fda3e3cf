import { wireKey } from './base.js';

wireKey();
