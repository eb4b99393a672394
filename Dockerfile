FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: the only one that would run installs Node, which is already here.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node bin/build.mjs

FROM node:24-bookworm-slim
# Fewer arenas and a smaller heap than Node uses without limits: docs/contributors/performance.md, Memory.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY --from=build /app/dist dist
COPY bin bin
# `pua doctor` compares the database with it.
COPY docs/schema.sql docs/
# `pua` and `npx pua`. Otherwise, npx would look for a package of that name, without a network.
RUN npm pkg delete bin && ln -s ../../bin/pua.mjs node_modules/.bin/pua
ENV PATH=/app/node_modules/.bin:$PATH
# Node's compile cache for faster starts, read-only for the user who runs it: docs/contributors/performance.md, Starts.
USER node
RUN NODE_COMPILE_CACHE=/tmp/compiled node -e "Promise.all(['app', 'commands'].map((name) => import('/app/dist/bundle/' + name + '.js'))).then(() => process.exit())"
USER root
RUN mv /tmp/compiled dist/.compiled && chown -R root:root dist/.compiled && chmod -R a=rX dist/.compiled
ENV NODE_COMPILE_CACHE=/app/dist/.compiled
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=2s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT ?? 3000) + '/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=8", "--max-old-space-size=256", "--heap-growing-percent=40", "--v8-pool-size=2", "bin/server.mjs"]
