// Jest's `setupFilesAfterEnv`: setup for every test file.
import { afterEach, expect } from '@jest/globals';
import fc from 'fast-check';

// The same seed for a whole run, which prints the seed (global-setup.mjs).
fc.configureGlobal({ seed: Number(process.env.FUZZ_SEED) });

afterEach(() => {
  if (expect.getState().assertionCalls === 0) throw new Error('This test asserts nothing');
});
