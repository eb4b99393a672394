import { Injectable } from '@nestjs/common';
import type { CounterName, GaugeName, HistogramName, LabelsOf, MetricName } from './metrics.js';

/** The current value for each set of labels. */
type Readings<Name extends MetricName> = readonly (readonly [labels: LabelsOf<Name>, value: number])[];

type Labels = Readonly<Record<string, string>>;
type Reader = () => readonly (readonly [Labels, number])[] | Promise<readonly (readonly [Labels, number])[]>;

/** Receives what is measured: Prometheus' client, where there is a METRICS_PORT. */
interface MeterSink {
  count(name: CounterName, labels: Labels, by: number): void;
  observe(name: HistogramName, labels: Labels, value: number): void;
}

/**
 * What features report, under the names in {@link METRICS}. Without a METRICS_PORT nothing is kept, and a call costs
 * nothing.
 */
@Injectable()
export class Meter {
  sink: MeterSink | undefined;
  readonly #readers = new Map<MetricName, Reader[]>();

  /** Counts something that happened, once or `by` times. */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.sink?.count(name, labels as Labels, by);
  }

  /** Records that something took `value` seconds. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.sink?.observe(name, labels as Labels, value);
  }

  /**
   * Registers a reader, which is called at each scrape for the value of a gauge, or of a counter that its feature keeps itself. A metric
   * may have several readers, each for labels of its own; the readings of one that fails are left out.
   */
  read<Name extends GaugeName | CounterName, const Read extends Readings<Name>>(
    name: Name,
    reader: () => Read | Promise<Read>,
  ): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), reader as Reader]);
  }

  /** @returns the current values from all readers of `name`; undefined where it has none */
  async readings(name: MetricName): Promise<(readonly [Labels, number])[] | undefined> {
    const readers = this.#readers.get(name);
    if (readers === undefined) return undefined;
    const results = await Promise.allSettled(readers.map(async (reader) => reader()));
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }
}
