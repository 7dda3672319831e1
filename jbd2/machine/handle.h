#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/time.h"

namespace jbdlab::jbd2 {

class Transaction;

// One atomic change on its way into the running transaction: asks for credits (blocks that it may
// newly dirty), joins, dirties, stops. Owned by whoever drives the journal.
// Source: struct jbd2_journal_handle, fs/jbd2/transaction.c.
class Handle {
 public:
  // `credits` without the room for revoke records, which is added here.
  struct Request {
    std::uint32_t credits = 0;
    std::uint32_t revoke_records = 0;
    std::uint32_t reserved = 0;  // credits of a handle that will be started later: see detach
    std::uint8_t type = 0;       // the file system's number for it, for traces only
  };

  Transaction* transaction = nullptr;
  std::uint8_t type = 0;
  bool is_reserved = false;  // holds reserved credits, and is not started yet
  std::uint32_t requested_credits = 0;
  std::int64_t credits = 0;  // left (h_total_credits), room for revokes included
  std::uint32_t revoke_requested = 0;
  std::int64_t revoke_credits = 0;  // records left
  std::uint32_t nesting = 1;        // starts that have not been stopped
  bool sync = false;                // its stop asks for the commit, and waits for it
  Handle* reserved = nullptr;       // started with this one, to be used later

  // Blocks newly dirtied through it so far.
  std::int64_t used() const noexcept { return std::int64_t{requested_credits} - credits; }
};

}  // namespace jbdlab::jbd2
