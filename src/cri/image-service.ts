import type { BindRpc } from './call-runtime.ts'
import { checkImageStatus, checkPulledImage } from './check-reply.ts'
import type { ImageService } from './cri-runtime.ts'
import { callDeadlineMs } from './runtime-service.ts'

const usual = (): number => callDeadlineMs
const unbounded = (): undefined => undefined

/** ImageService: what each RPC is bounded by and what its reply must carry. */
export function createImageService(rpc: BindRpc): ImageService {
  return {
    listImages: rpc('ListImages', { kind: 'read', deadlineMs: usual }),
    imageStatus: rpc('ImageStatus', { kind: 'read', deadlineMs: usual, check: checkImageStatus }),
    // How long a pull may take is for the puller to say: the runtime itself gives up where nothing moves.
    pullImage: rpc('PullImage', { kind: 'work', deadlineMs: unbounded, check: checkPulledImage }),
    removeImage: rpc('RemoveImage', { kind: 'change', deadlineMs: usual, whenAbsent: {} }),
    imageFsInfo: rpc('ImageFsInfo', { kind: 'read', deadlineMs: unbounded }),
  }
}
