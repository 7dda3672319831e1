// Buffers: how a block joins a transaction, stays out of the way of the one that commits, and
// leaves. Source: fs/jbd2/transaction.c (do_get_write_access, jbd2_journal_dirty_metadata,
// jbd2_journal_forget, __jbd2_journal_file_buffer, __jbd2_journal_refile_buffer), revoke.c.

#include <algorithm>

#include "base/check.h"
#include "jbd2/machine/journal.h"

namespace jbdlab::jbd2 {

void Journal::mark_dirty(BufferHead& buffer) {
  buffer.dirty = true;
  buffer.dirtied = now_;
  observer_.buffer_dirty(buffer);
}

void Journal::unlink(BufferHead& buffer) {
  if (buffer.list == BufferList::none) return;
  buffer.transaction->list(buffer.list).remove(buffer);
  buffer.list = BufferList::none;
}

// Takes the buffer off its transaction: from here on the block device may write it home.
void Journal::unfile(BufferHead& buffer) {
  unlink(buffer);
  buffer.transaction = nullptr;
  if (std::exchange(buffer.jbd_dirty, false)) mark_dirty(buffer);
}

void Journal::file(BufferHead& buffer, Transaction& transaction, BufferList list) {
  CHECK(buffer.transaction == nullptr || buffer.transaction == &transaction);
  const bool was_dirty = buffer.dirty || buffer.jbd_dirty;
  buffer.dirty = false;
  if (buffer.transaction != nullptr) {
    if (buffer.list == list) return;
    unlink(buffer);
  }
  buffer.transaction = &transaction;
  transaction.list(list).push_back(buffer);
  buffer.list = list;
  buffer.jbd_dirty = was_dirty;
}

// After the commit of its transaction: on to the next one that wants it, or out.
void Journal::refile(BufferHead& buffer) {
  Transaction* const next = std::exchange(buffer.next_transaction, nullptr);
  if (next == nullptr) {
    unfile(buffer);
    return;
  }
  unlink(buffer);
  buffer.transaction = nullptr;
  const BufferList list = buffer.freed      ? BufferList::forget
                          : buffer.modified ? BufferList::metadata
                                            : BufferList::reserved;
  file(buffer, *next, list);
}

Journal::Access Journal::get_write_access(Handle& handle, BufferHead& buffer) {
  Transaction* const own = handle.transaction;
  CHECK(own != nullptr);
  if (buffer.transaction == own || buffer.next_transaction == own) return Access::granted;
  if (buffer.locked) return Access::wait_buffer;
  if (buffer.transaction != nullptr) {  // the committing transaction has it
    CHECK(buffer.transaction == committing_.get() && buffer.next_transaction == nullptr);
    if (buffer.shadow) return Access::wait_buffer;
    buffer.modified = false;
    // Its image is still to be logged: keep it as it is now, and go on with a copy.
    if (buffer.list == BufferList::metadata && !buffer.frozen) buffer.frozen = buffer.data;
    buffer.next_transaction = own;
  } else {
    buffer.modified = false;
    file(buffer, *own, BufferList::reserved);
  }
  cancel_revoke(buffer);
  return Access::granted;
}

void Journal::get_create_access(Handle& handle, BufferHead& buffer) {
  Transaction* const own = handle.transaction;
  CHECK(own != nullptr);
  if (buffer.transaction == nullptr) {
    buffer.dirty = false;  // what it held was freed, and that is committed
    buffer.modified = false;
    file(buffer, *own, BufferList::reserved);
  } else if (buffer.transaction == committing_.get()) {
    buffer.modified = false;
    buffer.next_transaction = own;
  }
  cancel_revoke(buffer);
}

void Journal::dirty_metadata(Handle& handle, BufferHead& buffer) {
  Transaction* const own = handle.transaction;
  CHECK(own != nullptr);
  CHECK(buffer.transaction == own || buffer.next_transaction == own);
  if (!buffer.modified) {
    buffer.modified = true;
    CHECK(handle.credits > 0);
    --handle.credits;
  }
  buffer.jbd_dirty = true;
  // While the committing transaction holds it, refile() will bring it over.
  if (buffer.transaction != own) return;
  if (buffer.list != BufferList::metadata) file(buffer, *own, BufferList::metadata);
}

void Journal::image_written(BufferHead& buffer) {
  CHECK(buffer.shadow);
  buffer.shadow = false;
  observer_.wake(Wake::buffer);
}

void Journal::forget(Handle& handle, BufferHead& buffer) {
  Transaction* const own = handle.transaction;
  const bool was_modified = std::exchange(buffer.modified, false);
  if (buffer.transaction == own) {
    buffer.dirty = buffer.jbd_dirty = false;
    // An older image may wait for its checkpoint: this commit will make that superfluous.
    if (buffer.cp_transaction != nullptr) {
      file(buffer, *own, BufferList::forget);
    } else {
      unfile(buffer);
    }
    if (was_modified) ++handle.credits;
  } else if (buffer.transaction != nullptr) {  // it commits now, and is freed in ours
    buffer.freed = true;
    if (buffer.next_transaction == nullptr) {
      buffer.next_transaction = own;
    } else if (was_modified) {
      ++handle.credits;
    }
  } else if (buffer.cp_transaction != nullptr) {
    if (!buffer.dirty && !buffer.locked) {
      remove_checkpoint(buffer);
    } else {  // may leave the older transaction when ours is committed, no sooner
      buffer.dirty = false;
      file(buffer, *own, BufferList::forget);
      buffer.jbd_dirty = false;
    }
  } else {
    buffer.dirty = false;
  }
}

void Journal::revoke(Handle& handle, BufferHead& buffer) {
  CHECK(handle.transaction != nullptr);
  forget(handle, buffer);
  --handle.revoke_credits;
  const bool inserted = revoke_table_.insert(buffer.block).second;
  CHECK(inserted);  // a block is not freed twice
  Features features = superblock_.features();
  features.set(feature::kRevoke);  // reaches the disk with the next write of the superblock
  superblock_.set_features(features);
}

void Journal::order_data(Handle& handle, const OrderedData& data) {
  auto& ordered = handle.transaction->ordered;
  const auto known = std::ranges::find(ordered, data.ino, &OrderedData::ino);
  if (known == ordered.end()) {
    ordered.push_back(data);
  } else {
    known->first = std::min(known->first, data.first);
    known->end = std::max(known->end, data.end);
  }
}

void Journal::cancel_revoke(BufferHead& buffer) {
  if (!revoke_table_.empty()) revoke_table_.erase(buffer.block);
}

}  // namespace jbdlab::jbd2
