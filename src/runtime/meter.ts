import { Injectable } from '@nestjs/common';
import type { CounterName, GaugeName, HistogramName, LabelsOf, MetricName } from './metrics.js';

type Readings<Name extends MetricName> = readonly (readonly [labels: LabelsOf<Name>, value: number])[];

type Labels = Readonly<Record<string, string>>;
type Reader = () => readonly (readonly [Labels, number])[] | Promise<readonly (readonly [Labels, number])[]>;

interface MeterSink {
  count(name: CounterName, labels: Labels, by: number): void;
  observe(name: HistogramName, labels: Labels, value: number): void;
}

/** Receives the features' measurements, named in {@link METRICS}. Does nothing without METRICS_PORT. */
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

  /** Registers a reader of a gauge or counter, called at each scrape. A metric may have several readers; skips readers that fail. */
  read<Name extends GaugeName | CounterName, const Read extends Readings<Name>>(
    name: Name,
    reader: () => Read | Promise<Read>,
  ): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), reader as Reader]);
  }

  /** @returns the values of all readers of `name`; undefined if it has no reader */
  async readings(name: MetricName): Promise<(readonly [Labels, number])[] | undefined> {
    const readers = this.#readers.get(name);
    if (readers === undefined) return undefined;
    const results = await Promise.allSettled(readers.map(async (reader) => reader()));
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }
}
