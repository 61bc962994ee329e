/**
 * Whether a file of this name in the manifest directory is read: `.yaml`, `.yml` and `.json`, but never
 * dotfiles nor what editors leave beside a file (`x.yaml~`, `#x.yaml#`, `.x.yaml.swp`, `4913`).
 */
export function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/.test(name) && !/^[.#~]/.test(name)
}
