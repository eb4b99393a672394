// First import of every program: reports in one line that Node is too old, before anything fails because of it.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 12)) {
  console.error(
    `Node ${process.versions.node} is too old: use Node 24, which \`npm ci\` installs for npm scripts and npx`,
  );
  process.exit(1);
}
