// Multiplies two float32 matrices in node 18 or newer, or as a module of a web page.
//   node multiply.mjs [URL]    (default: http://127.0.0.1:8080)

// Returns the product of a, which is m×k, and b, which is k×n. Matrices are Float32Arrays, row after row. Throws an
// Error with the service's sentence if the service rejects the request.
export async function multiply(url, a, b, m, k, n) {
  const reply = await fetch(`${url}/v1/matmul?m=${m}&k=${k}&n=${n}&dtype=float32`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream' },
    body: new Blob([a, b]),
  });
  if (!reply.ok) throw new Error((await reply.json()).detail);
  return new Float32Array(await reply.arrayBuffer());
}

const url = globalThis.process?.argv[2] ?? 'http://127.0.0.1:8080';
const c = await multiply(url, new Float32Array([1, 2, 3, 4, 5, 6]), new Float32Array([7, 8, 9, 10, 11, 12]), 2, 3, 2);
console.log(`${c[0]} ${c[1]}\n${c[2]} ${c[3]}`);
