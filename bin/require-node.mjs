// First import of every program: reports in one line that this Node is not supported, before anything fails because of it.
// The versions are those of `engines` in package.json.
const [major, minor] = process.versions.node.split('.').map(Number);
if (!((major === 22 && minor >= 13) || (major === 24 && minor >= 11) || major > 24)) {
  console.error(
    `Node ${process.versions.node} is not supported: use 22.13 or a newer 22, or 24.11 or newer. npm scripts and npx use the one that \`npm ci\` installs`,
  );
  process.exit(1);
}
