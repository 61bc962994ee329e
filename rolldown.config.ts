import { defineConfig } from 'rolldown'

/**
 * One self-contained directory: main.js, lazily loaded chunks beside it (a CLI call loads its verb only), the files of
 * worker threads and processes, and the wire definitions, which package.json's build copies to dist/proto.
 */
export default defineConfig({
  input: {
    main: 'src/main.ts',
    'decode-worker': 'src/sources/decode-worker.ts',
    'netns-dial-worker': 'src/host/netns/netns-dial-worker.ts',
  },
  platform: 'node',
  output: { dir: 'dist', format: 'esm', cleanDir: true, chunkFileNames: '[name]-[hash].js' },
})
