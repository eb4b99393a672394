import { Injectable } from '@nestjs/common';
import type { CounterName, GaugeName, HistogramName, LabelsOf, MetricName } from './metrics.js';

/** A value as it is at the moment, for each set of labels. */
export type Readings<Name extends MetricName> = readonly (readonly [labels: LabelsOf<Name>, value: number])[];

type Labels = Readonly<Record<string, string>>;
type Reader = () => readonly (readonly [Labels, number])[] | Promise<readonly (readonly [Labels, number])[]>;

/** Where what is measured goes: Prometheus' client, where there is a METRICS_PORT. */
export interface MeterSink {
  count(name: CounterName, labels: Labels, by: number): void;
  observe(name: HistogramName, labels: Labels, value: number): void;
}

/**
 * What features tell of themselves, by the names of {@link METRICS}. Where nobody asks (no METRICS_PORT) nothing is kept,
 * and a call costs nothing.
 */
@Injectable()
export class Meter {
  #sink: MeterSink | undefined;
  readonly #readers = new Map<MetricName, Reader[]>();

  /** Something happened, once or `by` times. */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.#sink?.count(name, labels as Labels, by);
  }

  /** Something took `value` seconds. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.#sink?.observe(name, labels as Labels, value);
  }

  /**
   * `reader` says at each scrape what a gauge stands at, or a counter that its feature keeps itself. A metric may have
   * several readers, each for labels of its own; one that fails leaves its readings out.
   */
  read<Name extends GaugeName | CounterName, const Read extends Readings<Name>>(
    name: Name,
    reader: () => Read | Promise<Read>,
  ): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), reader as Reader]);
  }

  /** @returns what all readers of `name` say now; undefined where it has none */
  async readings(name: MetricName): Promise<(readonly [Labels, number])[] | undefined> {
    const readers = this.#readers.get(name);
    if (readers === undefined) return undefined;
    const results = await Promise.allSettled(readers.map(async (reader) => reader()));
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }

  connect(sink: MeterSink): void {
    this.#sink = sink;
  }
}
