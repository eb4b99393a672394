export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** What to do; null if nothing. */
  readonly mend: string | null;
}

const withStatus =
  (status: Check['status']) =>
  (name: string, message: string, mend: string): Check => ({ name, status, message, mend });

/** Reports what works, but will not for long or not as meant. */
export const warn = withStatus('warn');
/** Reports what does not work. */
export const fail = withStatus('fail');
/** Reports that all is well. */
export const ok = (name: string, message: string): Check => ({ name, status: 'ok', message, mend: null });

/** A warning, if there is something to warn of. */
export const warnIf = (isSo: boolean, ...warning: Parameters<typeof warn>): Check[] =>
  isSo ? [warn(...warning)] : [];
/** What was found to be wrong, or that nothing was. */
export const allOf = (wrong: readonly Check[], ...fine: Parameters<typeof ok>): readonly Check[] =>
  wrong.length > 0 ? wrong : [ok(...fine)];

/** What to do about a copy or a number that is wrong. */
export const MEND = 'run `pua doctor --mend`: it recounts and copies again without blocking other writers';
