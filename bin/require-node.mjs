// First import of every program: rejects an unsupported Node before anything fails because of it. `engines` in package.json also allows 20,
// with which npm starts the Node that it installs.
const [major, minor] = process.versions.node.split('.').map(Number);
if (!((major === 22 && minor >= 13) || (major === 24 && minor >= 11) || major > 24)) {
  console.error(
    `Node ${process.versions.node} is not supported. Use 22.13 or a later 22, or 24.11 or later. npm scripts and npx use the version that \`npm ci\` installs`,
  );
  process.exit(1);
}
