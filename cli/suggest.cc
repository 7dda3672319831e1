#include "cli/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace jbdlab::cli {
namespace {

// Insertions, deletions and substitutions that lead from `a` to `b` (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = word.size() / 3 + 2;  // further away it is another word
  for (const std::string_view candidate : candidates) {
    const bool begun = word.size() >= 2 && candidate.starts_with(word);
    const std::size_t distance = begun ? 1 : edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  return best.empty() ? std::string{} : fmt::format("; did you mean {}?", best);
}

}  // namespace jbdlab::cli
