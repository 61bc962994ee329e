/** podd's version; the same as package.json's, which a test holds. */
export const poddVersion = '0.1.0'
