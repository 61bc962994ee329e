import type { PrepareVolume } from './volume-plugin.ts'

/** The runtime mounts an image's files itself, read-only; there is nothing on the host to prepare. */
export const prepareImageVolume: PrepareVolume = async ({ image }) =>
  image?.reference === undefined ? undefined : { hostPath: '', selinuxRelabel: false, image: image.reference }
