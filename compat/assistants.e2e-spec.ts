import { describeAssistants, LANGUAGES } from './assistants.js';

describeAssistants(LANGUAGES);
