import { DataSource, type EntityManager } from 'typeorm';

type Work<T> = (manager: EntityManager) => Promise<T>;
type IsolationLevel = Parameters<DataSource['transaction']>[0];

/** PostgreSQL, appendix A. */
const DEADLOCK = '40P01';
const ATTEMPTS = 5;

/**
 * Tries a transaction again that PostgreSQL ended because it and another one waited for each other: nothing of it has happened, and the
 * other one goes on. No caller needs to know.
 */
export class RetryingDataSource extends DataSource {
  override transaction<T>(work: Work<T>): Promise<T>;
  override transaction<T>(isolation: IsolationLevel, work: Work<T>): Promise<T>;
  override async transaction<T>(first: IsolationLevel | Work<T>, second?: Work<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await super.transaction(first as IsolationLevel, second as Work<T>);
      } catch (error) {
        if (attempt === ATTEMPTS || (error as { code?: unknown }).code !== DEADLOCK) throw error;
      }
    }
  }
}
