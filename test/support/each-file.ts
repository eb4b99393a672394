// Jest's `setupFilesAfterEnv`: what holds for the tests of every file.
import { afterEach, expect } from '@jest/globals';
import fc from 'fast-check';

// The same in a whole run, which prints it (global-setup.mjs).
fc.configureGlobal({ seed: Number(process.env.FUZZ_SEED) });

afterEach(() => {
  if (expect.getState().assertionCalls === 0) throw new Error('This test asserts nothing');
});
