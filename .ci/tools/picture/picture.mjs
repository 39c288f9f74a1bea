// Makes docs/picture.png: the comment on an issue and the pull request that a thread led to,
// as a forge's page shows them. Both texts are golden files of engine/runner/report, so the
// picture shows what uwf writes. Usage: node picture.mjs ROOT CHROMIUM
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { marked } from 'marked';
import { chromium } from 'playwright-core';

const [root, browserPath] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const golden = (name) => readFileSync(join(root, 'engine/runner/report/testdata', name), 'utf8');
const escape = (s) => s.replace(/&/g, '&amp;').replace(/</g, '&lt;');

// Forges draw a fence of mermaid, and leave out comments in HTML.
marked.use({
  gfm: true,
  renderer: {
    code({ text, lang }) {
      return lang === 'mermaid' ? `<pre class="mermaid">${escape(text)}</pre>` : false;
    },
  },
});
const render = (markdown) => marked.parse(markdown.replace(/<!--.*?-->\n?/gs, ''));

const box = (author, markdown) => `<section class="comment">
  <header><b>${author}</b> <span class="bot">bot</span></header>
  <div class="markdown-body">${render(markdown)}</div></section>`;

const comment = golden('delivered.md');
const [title, ...body] = golden('pull.md').split('\n');
const pullTitle = escape(title.replace(/^# /, ''));
const html = `<!doctype html><meta charset="utf-8"><style>
${readFileSync(require.resolve('github-markdown-css/github-markdown-light.css'), 'utf8')}
* { box-sizing: border-box }
body { margin: 0; padding: 20px; width: 1480px; background: #fff; display: grid; grid-template-columns: 1fr 1fr; gap: 28px;
  font: 14px/1.5 "Liberation Sans", Arial, sans-serif; color: #1f2328 }
h1 { font-size: 22px; font-weight: 400; margin: 0 0 8px } h1 span { color: #59636e }
.state { display: inline-block; border-radius: 2em; padding: 3px 12px; color: #fff; background: #1f883d; margin-bottom: 14px }
.label { display: inline-block; border-radius: 2em; padding: 1px 9px; margin-left: 8px; background: #ddf4ff; color: #0550ae; font-size: 12px; font-weight: 600 }
.comment { border: 1px solid #d1d9e0; border-radius: 6px }
.comment header { background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; padding: 8px 14px }
.bot { border: 1px solid #d1d9e0; border-radius: 2em; padding: 0 6px; font-size: 12px; color: #59636e }
.markdown-body { padding: 14px; font-size: 14px; font-family: inherit; overflow: hidden }
.markdown-body pre.mermaid { background: none; padding: 0; text-align: center }
</style>
<article><h1>${pullTitle} <span>#12</span></h1><span class="state">Open</span><span class="label">uwf</span>${box('github-actions', comment)}</article>
<article><h1>${pullTitle} <span>#57</span></h1><span class="state">Open</span>${box('github-actions', body.join('\n'))}</article>`;

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});
try {
  const page = await browser.newPage({ viewport: { width: 1480, height: 800 }, deviceScaleFactor: 1.25 });
  await page.setContent(html);
  await page.addScriptTag({ path: join(require.resolve('mermaid/package.json'), '../dist/mermaid.min.js') });
  await page.evaluate(async () => {
    globalThis.mermaid.initialize({ startOnLoad: false, flowchart: { useMaxWidth: true } });
    await globalThis.mermaid.run({ querySelector: '.mermaid' });
  });
  writeFileSync(join(root, 'docs/picture.png'), await page.screenshot({ fullPage: true }));
} finally {
  await browser.close();
}
