export function drawTables(objects: readonly { name: string; statement: string }[]): string;
