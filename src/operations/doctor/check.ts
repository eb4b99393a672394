export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** The remedy; null if none is needed. */
  readonly mend: string | null;
}

const withStatus =
  (status: Check['status']) =>
  (name: string, message: string, mend: string): Check => ({ name, status, message, mend });

export const warn = withStatus('warn');
export const fail = withStatus('fail');
/** Returns a success. */
export const ok = (name: string, message: string): Check => ({ name, status: 'ok', message, mend: null });

/** Returns a warning if the condition holds. */
export const warnIf = (isSo: boolean, ...warning: Parameters<typeof warn>): Check[] =>
  isSo ? [warn(...warning)] : [];
/** Returns the problems, or a success if there are none. */
export const allOf = (wrong: readonly Check[], ...fine: Parameters<typeof ok>): readonly Check[] =>
  wrong.length > 0 ? wrong : [ok(...fine)];

export const MEND = 'run `pua doctor --mend`, which corrects them without blocking other writers';
