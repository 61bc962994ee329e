/**
 * Calls a function of `node:fs` that takes a callback. A file handle of `node:fs/promises` takes twice the CPU, which is a
 * good part of a pod's start. Rejects with the system's error.
 */
export function callFile<T>(begin: (callback: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    begin((error, value) => {
      if (error === null) resolve(value)
      else reject(error)
    })
  })
}
