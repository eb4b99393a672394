// Archives in the two formats of package managers: the same files produce the same bytes on every machine at any time.
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

/** A file of an archive: its path in the archive, and its content. @typedef {readonly [path: string, content: string | Buffer]} File */

const BLOCK = 512;
/** The modification time in npm's archives: 26 October 1985. */
const TAR_SECONDS = 499_162_500;
/** 1 January 1980, the first day of the format. */
const ZIP_DATE = 0x21;
const UTF8_NAMES = 0x800;
const DEFLATE = 8;

/** @param {readonly File[]} files @returns {Buffer} tar (POSIX ustar), gzipped */
export function tgz(files) {
  const blocks = files.flatMap(([path, text]) => {
    const content = Buffer.from(text);
    return [tarHeader(path, content.length), content, Buffer.alloc(-content.length & (BLOCK - 1))];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 9 });
}

function tarHeader(path, size) {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for a tar file`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value, digits) => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(path, 0);
  header.write(octal(0o644, 7) + octal(0, 7) + octal(0, 7) + octal(size, 11) + octal(TAR_SECONDS, 11), 100);
  header.write('        0', 148); // the checksum field, spaces while it is computed; then the type: a file
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)} `, 148);
  return header;
}

/** @param {readonly File[]} files @returns {Buffer} */
export function zip(files) {
  const entries = [];
  const directory = [];
  let offset = 0;
  for (const [path, text] of files) {
    const [name, content] = [Buffer.from(path), Buffer.from(text)];
    const packed = deflateRawSync(content, { level: 9 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0); // version needed to extract
    common.writeUInt16LE(UTF8_NAMES, 2);
    common.writeUInt16LE(DEFLATE, 4);
    common.writeUInt16LE(ZIP_DATE, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE((0o100644 << 16) >>> 0, 6); // Unix file mode: readable by all
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, place, name);
    entries.push(Buffer.from('PK\x03\x04', 'latin1'), common, name, packed);
    offset += 30 + name.length + packed.length;
  }
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(Buffer.concat(directory).length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...entries, ...directory, Buffer.from('PK\x05\x06', 'latin1'), end]);
}
