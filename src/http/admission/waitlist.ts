/** What waits: in the order in which it came for each key, while the keys take turns. */
export class Waitlist<Item extends { readonly since: number }> {
  // An array, for the reason given in response-deadline.ts. Of 4,000 keys, more than there are connections, one is found in 10 µs.
  readonly #lines: { readonly key: string; readonly list: Waitlist<Item> }[] = [];
  readonly #items: Item[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Keys under which something waits. */
  get keys(): number {
    return this.#lines.length;
  }

  has(key: string): boolean {
    return this.#lines.some((line) => line.key === key);
  }

  /** @param keys whose turn it waits for; a second one takes turns within the first */
  add(item: Item, ...[key, ...rest]: string[]): void {
    this.#size++;
    if (key === undefined) {
      this.#items.push(item);
      return;
    }
    let line = this.#lines.find((one) => one.key === key);
    if (!line) this.#lines.push((line = { key, list: new Waitlist() }));
    line.list.add(item, ...rest);
  }

  /** Takes the item whose turn it is. */
  next(): Item | undefined {
    if (this.#size === 0) return undefined;
    this.#size--;
    const line = this.#lines.shift();
    if (!line) return this.#items.shift();
    const item = line.list.next();
    if (line.list.size > 0) this.#lines.push(line); // behind the others
    return item;
  }

  /** Takes items that have waited since before `time`, `most` of them at most. */
  takeOlderThan(time: number, most = Infinity): Item[] {
    const taken: Item[] = [];
    for (const { list } of this.#lines) taken.push(...list.takeOlderThan(time, most - taken.length));
    for (let i = this.#lines.length - 1; i >= 0; i--)
      if (this.#lines[i]!.list.size === 0) this.#lines.splice(i, 1);
    while (taken.length < most && this.#items.length > 0 && this.#items[0]!.since < time)
      taken.push(this.#items.shift()!);
    this.#size -= taken.length;
    return taken;
  }
}
