/** What waits: in the order in which it came for each key, while the keys take turns. */
export class Waitlist<Item extends { readonly since: number }> {
  readonly #lines = new Map<string, Waitlist<Item>>();
  readonly #items: Item[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param keys whose turn it waits for; a second one takes turns within the first */
  add(item: Item, ...[key, ...rest]: string[]): void {
    this.#size++;
    if (key === undefined) {
      this.#items.push(item);
      return;
    }
    let line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, (line = new Waitlist()));
    line.add(item, ...rest);
  }

  /** Takes the item whose turn it is. */
  next(): Item | undefined {
    if (this.#size === 0) return undefined;
    this.#size--;
    const [turn] = this.#lines;
    if (turn === undefined) return this.#items.shift();
    const [key, line] = turn;
    const item = line.next();
    this.#lines.delete(key);
    if (line.size > 0) this.#lines.set(key, line); // behind the others
    return item;
  }

  /** Takes all items that have waited since before `time`. */
  takeOlderThan(time: number): Item[] {
    const taken: Item[] = [];
    for (const [key, line] of this.#lines) {
      taken.push(...line.takeOlderThan(time));
      if (line.size === 0) this.#lines.delete(key);
    }
    while (this.#items.length > 0 && this.#items[0]!.since < time) taken.push(this.#items.shift()!);
    this.#size -= taken.length;
    return taken;
  }
}
