import { Injectable } from '@nestjs/common';
import type { CounterName, GaugeName, HistogramName, LabelsOf, MetricName } from './metrics.js';

type Readings<Name extends MetricName> = readonly (readonly [labels: LabelsOf<Name>, value: number])[];

type Labels = Readonly<Record<string, string>>;
type Reader = () => readonly (readonly [Labels, number])[] | Promise<readonly (readonly [Labels, number])[]>;

interface MeterSink {
  count(name: CounterName, labels: Labels, by: number): void;
  observe(name: HistogramName, labels: Labels, value: number): void;
}

/** Collects measurements for the metrics in {@link METRICS}; without a sink, discards counts and durations. */
@Injectable()
export class Meter {
  sink: MeterSink | undefined;
  readonly #readers = new Map<MetricName, Reader[]>();

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.sink?.count(name, labels as Labels, by);
  }

  /** Records a duration in seconds. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.sink?.observe(name, labels as Labels, value);
  }

  /** Registers a function that reads a gauge or counter at each scrape. A metric can have several; those that fail are skipped. */
  read<Name extends GaugeName | CounterName, const Read extends Readings<Name>>(
    name: Name,
    reader: () => Read | Promise<Read>,
  ): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), reader as Reader]);
  }

  /** @returns the values of all readers of `name` that succeed; undefined if it has no reader */
  async readings(name: MetricName): Promise<(readonly [Labels, number])[] | undefined> {
    const readers = this.#readers.get(name);
    if (readers === undefined) return undefined;
    const results = await Promise.allSettled(readers.map(async (reader) => reader()));
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }
}
