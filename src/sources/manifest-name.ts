/**
 * Whether a file of this name in the manifest directory is read: `.yaml`, `.yml` and `.json`, in capitals too, but never
 * dotfiles nor editors' temporary files (`x.yaml~`, `#x.yaml#`, `.x.yaml.swp`, `4913`).
 */
export function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name) && !isHiddenName(name)
}

/** The same for a path below the manifest directory, `sub/x.yaml`: hidden directories are not read. */
export function isManifestPath(path: string): boolean {
  const names = path.split('/')
  return isManifestName(names.at(-1) ?? '') && !names.some((name) => isHiddenName(name))
}

export function isHiddenName(name: string): boolean {
  return /^[.#~]/.test(name)
}

/** Whether whoever put a file of this name there may take it for a manifest: it isn't read, and no program made it for a moment. */
export function isPassedOver(name: string): boolean {
  const isTemporary = /(?:~|\.(?:sw[a-p]|tmp|temp|part|new|bak|old|orig|dpkg-\w+|rpm\w+))$|^\d+$/i.test(name)
  return !isManifestName(name) && !isHiddenName(name) && !isTemporary
}
