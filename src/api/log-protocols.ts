/**
 * How a log is sent over a WebSocket: as binary messages, or in base64 as text, for what runs in a browser
 * (`apimachinery/pkg/util/httpstream/wsstream/stream.go`, 1.36). A client that names none gets binary messages.
 */
export const logProtocols = ['binary.k8s.io', 'base64.binary.k8s.io', ''] as const
