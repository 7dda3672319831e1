#include "sim/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/engine/random.h"
#include "sim/engine/sync.h"

namespace jbdlab::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr bool kNever = false;

Time at(Duration d) { return Time{} + d; }

// What happened, in order: "name@microseconds".
class Journal {
 public:
  explicit Journal(const Engine& engine) : engine_(engine) {}
  void note(const std::string& name) {
    lines.push_back(name + "@" + std::to_string(engine_.now().time_since_epoch() / 1us));
  }
  std::vector<std::string> lines;

 private:
  const Engine& engine_;
};

Task<> sleeper(Engine& engine, Journal& journal, std::string name, Duration length) {
  co_await engine.delay(length);
  journal.note(name);
}

TEST(Engine, FiresEventsInTheOrderOfTime) {
  Engine engine;
  Journal journal(engine);
  engine.spawn(sleeper(engine, journal, "c", 30us));
  engine.spawn(sleeper(engine, journal, "a", 10us));
  engine.spawn(sleeper(engine, journal, "b", 20us));
  EXPECT_FALSE(engine.run_until(kNever));
  EXPECT_THAT(journal.lines, ElementsAre("a@10", "b@20", "c@30"));
  EXPECT_EQ(engine.now(), at(30us));
}

TEST(Engine, FiresEventsOfOneInstantInTheOrderInWhichTheyWereScheduled) {
  Engine engine;
  Journal journal(engine);
  for (const char* name : {"a", "b", "c", "d"}) {
    engine.spawn(sleeper(engine, journal, name, 10us));
  }
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@10", "b@10", "c@10", "d@10"));
}

Task<> chain(Engine& engine, Journal& journal) {
  journal.note("first");
  co_await engine.delay(0us);  // no event: nothing gets between
  journal.note("second");
  co_await engine.delay(-5us);
  journal.note("third");
}

TEST(Engine, ADelayOfNothingIsNoEvent) {
  Engine engine;
  Journal journal(engine);
  engine.spawn(chain(engine, journal));
  engine.spawn(sleeper(engine, journal, "other", 0us));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("first@0", "second@0", "third@0", "other@0"));
  EXPECT_EQ(engine.events_fired(), 2U);  // the two spawns
}

TEST(Engine, WhatIsScheduledForThePastHappensNowBehindWhatIsReady) {
  Engine engine;
  std::vector<int> fired;
  struct Context {
    std::vector<int>* fired;
    int number;
  } first{&fired, 1}, second{&fired, 2};
  const auto fire = [](void* context) {
    auto* self = static_cast<Context*>(context);
    self->fired->push_back(self->number);
  };
  engine.call_soon(fire, &first);
  engine.call_at(at(-1us), fire, &second);
  engine.run_until(kNever);
  EXPECT_THAT(fired, ElementsAre(1, 2));
  EXPECT_EQ(engine.now(), at(0us));
}

TEST(Engine, StopsAtTheLimitAndGoesOnFromThere) {
  Engine engine;
  Journal journal(engine);
  engine.spawn(sleeper(engine, journal, "a", 10us));
  engine.spawn(sleeper(engine, journal, "b", 20us));
  EXPECT_FALSE(engine.run_until(kNever, at(10us)));
  EXPECT_THAT(journal.lines, ElementsAre("a@10"));
  EXPECT_EQ(engine.now(), at(10us));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@10", "b@20"));
}

Task<> finish(Engine& engine, Duration length, bool& done) {
  co_await engine.delay(length);
  done = true;
}

TEST(Engine, StopsAfterTheEventThatSaysDone) {
  Engine engine;
  Journal journal(engine);
  bool done = false;
  engine.spawn(finish(engine, 10us, done));
  engine.spawn(sleeper(engine, journal, "same instant", 10us));
  EXPECT_TRUE(engine.run_until(done));
  EXPECT_TRUE(journal.lines.empty());
}

Task<int> twice(Engine& engine, int n) {
  co_await engine.delay(1us);
  co_return 2 * n;
}

Task<> caller(Engine& engine, int& result) {
  for (int i = 0; i < 100'000; ++i) {
    const int one_more = co_await twice(engine, i);
    result = one_more;
  }
}

TEST(Engine, ATaskThatIsAwaitedYieldsItsValueAndUsesNoStack) {
  Engine engine;
  int result = 0;
  engine.spawn(caller(engine, result));
  engine.run_until(kNever);
  EXPECT_EQ(result, 199'998);
  EXPECT_EQ(engine.now(), at(100'000us));
}

Task<> count_up(Engine& engine, std::uint64_t i, std::uint64_t& sum) {
  co_await engine.delay(Duration(i % 1000));
  sum += i;
}

TEST(Engine, RunsManyProcesses) {
  Engine engine;
  std::uint64_t sum = 0;
  constexpr std::uint64_t kProcesses = 100'000;
  for (std::uint64_t i = 0; i < kProcesses; ++i) engine.spawn(count_up(engine, i, sum));
  engine.run_until(kNever);
  EXPECT_EQ(sum, kProcesses * (kProcesses - 1) / 2);
}

struct CountsItsEnd {
  explicit CountsItsEnd(int& ends) : ends_(ends) {}
  CountsItsEnd(const CountsItsEnd&) = delete;
  CountsItsEnd& operator=(const CountsItsEnd&) = delete;
  ~CountsItsEnd() { ++ends_; }
  int& ends_;
};

Task<> inner_forever(Engine& engine, int& ends) {
  const CountsItsEnd inner(ends);
  co_await engine.delay(1'000'000s);
}

Task<> forever(Engine& engine, int& ends) {
  const CountsItsEnd outer(ends);
  co_await inner_forever(engine, ends);
}

TEST(Engine, DestroysUnfinishedProcessesWithAllThatTheyHold) {
  int ends = 0;
  {
    Engine engine;
    engine.spawn(forever(engine, ends));
    engine.spawn(forever(engine, ends));
    engine.spawn(inner_forever(engine, ends));  // never begins
    engine.run_until(kNever, at(0us));
    engine.spawn(forever(engine, ends));
    EXPECT_EQ(ends, 0);
  }
  EXPECT_EQ(ends, 5);
}

Task<> hold(Engine& engine, Mutex& mutex, Journal& journal, std::string name, Duration length) {
  auto guard = co_await mutex.lock();
  journal.note(name);
  co_await engine.delay(length);
}

Task<> hold_again_and_again(Engine& engine, Mutex& mutex, Journal& journal, std::string name) {
  for (int i = 0; i < 3; ++i) {
    auto guard = co_await mutex.lock();
    journal.note(name);
    co_await engine.delay(10us);
    guard.unlock();
  }
}

TEST(Mutex, IsFirstComeFirstServed) {
  Engine engine;
  Journal journal(engine);
  Mutex mutex(engine);
  engine.spawn(hold(engine, mutex, journal, "a", 10us));
  engine.spawn(hold(engine, mutex, journal, "b", 0us));
  engine.spawn(hold(engine, mutex, journal, "c", 5us));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@0", "b@10", "c@10"));
  EXPECT_FALSE(mutex.held());
}

TEST(Mutex, PassesToTheWaiterAndNotBackToWhoLetGo) {
  Engine engine;
  Journal journal(engine);
  Mutex mutex(engine);
  engine.spawn(hold_again_and_again(engine, mutex, journal, "a"));
  engine.spawn(hold_again_and_again(engine, mutex, journal, "b"));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@0", "b@10", "a@20", "b@30", "a@40", "b@50"));
}

Task<> await_latch(Latch& latch, Journal& journal, std::string name) {
  co_await latch.wait();
  journal.note(name);
}

Task<> work(Engine& engine, Latch& latch, Duration length) {
  co_await engine.delay(length);
  latch.done();
}

TEST(Latch, WakesAllWhenThePendingWorkIsDone) {
  Engine engine;
  Journal journal(engine);
  Latch latch(engine);
  latch.add(2);
  engine.spawn(await_latch(latch, journal, "a"));
  engine.spawn(await_latch(latch, journal, "b"));
  engine.spawn(work(engine, latch, 10us));
  engine.spawn(work(engine, latch, 20us));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@20", "b@20"));
  EXPECT_EQ(latch.pending(), 0U);
}

TEST(Latch, DoesNotWaitForNothing) {
  Engine engine;
  Journal journal(engine);
  Latch latch(engine);
  engine.spawn(await_latch(latch, journal, "a"));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@0"));
  EXPECT_EQ(engine.events_fired(), 1U);
}

Task<> wait_for(WaitQueue& queue, const bool& ready, Journal& journal, std::string name) {
  while (!ready) co_await queue.wait();
  journal.note(name);
}

Task<> set_after(Engine& engine, WaitQueue& queue, bool& ready) {
  co_await engine.delay(5us);
  queue.wake_all();  // too early: they look and wait again
  co_await engine.delay(5us);
  ready = true;
  queue.wake_all();
}

TEST(WaitQueue, AWakeMeansLookAgain) {
  Engine engine;
  Journal journal(engine);
  WaitQueue queue(engine);
  bool ready = false;
  engine.spawn(wait_for(queue, ready, journal, "a"));
  engine.spawn(wait_for(queue, ready, journal, "b"));
  engine.spawn(set_after(engine, queue, ready));
  engine.run_until(kNever);
  EXPECT_THAT(journal.lines, ElementsAre("a@10", "b@10"));
  EXPECT_TRUE(queue.empty());
}

TEST(Random, GivesTheNumbersOfTheGeneratorsDefinition) {
  // xoshiro256** from the state that SplitMix64 makes of 0: the reference implementations' output.
  Random random(0);
  EXPECT_EQ(random.next(), 0x99EC'5F36'CB75'F2B4U);
  EXPECT_EQ(random.next(), 0xBF6E'1F78'4956'452AU);
  EXPECT_EQ(random.next(), 0x1A5F'849D'4933'E6E0U);
}

TEST(Random, AForkDependsOnSeedAndNameOnly) {
  Random drawn(7);
  for (int i = 0; i < 10; ++i) drawn.next();
  EXPECT_EQ(drawn.fork("device").next(), Random(7).fork("device").next());
  EXPECT_NE(Random(7).fork("device").next(), Random(7).fork("ext4").next());
  EXPECT_NE(Random(7).fork("device").next(), Random(8).fork("device").next());
  EXPECT_NE(Random(7).fork("device").next(), Random(7).next());
}

TEST(Random, DrawsBelowItsBoundEvenly) {
  for (const std::uint64_t bound : {1U, 2U, 3U, 7U, 100U}) {
    Random random(bound);
    std::vector<int> seen(bound);
    const int draws = static_cast<int>(bound) * 1000;
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t draw = random.below(bound);
      ASSERT_LT(draw, bound);
      ++seen[draw];
    }
    for (const int n : seen) EXPECT_NEAR(n, 1000, 150) << "bound " << bound;
  }
  // A bound for which a plain modulo would be off by half: 3/4 of all numbers.
  Random random(1);
  const std::uint64_t bound = std::uint64_t{3} << 62;
  int low = 0;
  for (int i = 0; i < 30'000; ++i) low += random.below(bound) < bound / 3 ? 1 : 0;
  EXPECT_NEAR(low, 10'000, 400);
}

}  // namespace
}  // namespace jbdlab::sim
