/** What a host itself gives for `${NAME}`: its node's name, its architecture as images have it, and its machine id. */
export const hostFactNames: readonly string[] = ['NODE_NAME', 'ARCH', 'MACHINE_ID']
