/** podd's version; the same as package.json's, which a test holds. */
export const poddVersion = '0.1.0'

/** The Kubernetes release whose behaviour podd matches. */
export const kubernetesVersion = '1.36'
