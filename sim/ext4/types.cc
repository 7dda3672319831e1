#include "sim/ext4/types.h"

namespace jbdlab::ext4 {

std::string_view errno_name(Errno e) noexcept {
  switch (e) {
    case Errno::enoent:
      return "ENOENT: no such file or directory";
    case Errno::eexist:
      return "EEXIST: file exists";
    case Errno::enotdir:
      return "ENOTDIR: not a directory";
    case Errno::eisdir:
      return "EISDIR: is a directory";
    case Errno::enospc:
      return "ENOSPC: no space left on device";
    case Errno::emlink:
      return "EMLINK: too many links";
    case Errno::enametoolong:
      return "ENAMETOOLONG: file name too long";
    case Errno::efbig:
      return "EFBIG: file too large";
    case Errno::einval:
      return "EINVAL: invalid argument";
    case Errno::enotempty:
      return "ENOTEMPTY: directory not empty";
    case Errno::ebadf:
      return "EBADF: bad file descriptor";
    case Errno::euclean:
      return "EUCLEAN: structure needs cleaning";
    case Errno::erofs:
      return "EROFS: read-only file system";
    case Errno::edquot:
      return "EDQUOT: disk quota exceeded";
    case Errno::eopnotsupp:
      return "EOPNOTSUPP: operation not supported";
  }
  return "unknown error";
}

}  // namespace jbdlab::ext4
