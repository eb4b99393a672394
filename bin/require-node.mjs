// First import of every program: rejects an older Node before anything fails because of it.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 12)) {
  console.error(`Node ${process.versions.node} is not supported. Use Node 22.12 or later.`);
  process.exit(1);
}
