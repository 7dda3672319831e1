#include "sim/ext4/inode.h"

#include "sim/ext4/alloc/preallocation.h"
#include "sim/ext4/page_cache.h"

namespace jbdlab::ext4 {

Inode::Inode(Ino number, sim::Engine& engine)
    : ino(number),
      lock(engine),
      mapping_lock(engine),
      preallocations(std::make_unique<InodePreallocations>()),
      pages(std::make_unique<PageCache>()) {}

Inode::~Inode() = default;

}  // namespace jbdlab::ext4
