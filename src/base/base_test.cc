#include <gtest/gtest.h>

#include <thread>

#include "base/bounded_queue.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strings.h"

namespace t5x {
namespace {

TEST(Error, ContextIsAddedWhileUnwinding) {
  try {
    in_context("outer",
               [] { in_context("inner", [] { throw_error<DataError>("expected {}, found {}", 1, 2); }); });
    FAIL();
  } catch (const DataError& e) {
    EXPECT_STREQ(e.what(), "expected 1, found 2\n  in inner\n  in outer");
  }
}

TEST(Hash, Sha1OfEmptyString) { EXPECT_EQ(sha1("")[0], 0xda); }
TEST(Hash, Sha256OfAbc) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
// The check value of the CRC catalogue and a vector of RFC 3720.
TEST(Hash, Crc32cOfKnownVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(Strings, CloseMatchesAreOrderedByDistance) {
  EXPECT_EQ(close_matches("dropout_rat", {"mlp_dim", "dropout_rate", "dropout_rates"}),
            (std::vector<std::string>{"dropout_rate", "dropout_rates"}));
  EXPECT_EQ(did_you_mean("zzz", {"mlp_dim"}), "");
}

TEST(Strings, InvalidUtf8IsLocated) {
  EXPECT_EQ(find_invalid_utf8("h\xc3\xa9llo \xf0\x9f\x98\x80"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0u);  // surrogate
  EXPECT_EQ(find_invalid_utf8("a\xe2\x82"), 1u);     // cut off
}

TEST(File, AtomicWriteLeavesOneFile) {
  TempDir dir;
  write_file_atomic(dir / "a", "one");
  write_file_atomic(dir / "a", "two");
  EXPECT_EQ(read_file(dir / "a"), "two");
  EXPECT_EQ(glob((dir / "*").string()).size(), 1u);
}

TEST(File, MissingFileNamesThePath) {
  try {
    read_file("no/such/file");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("no/such/file"), std::string::npos);
  }
}

TEST(File, FullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "/dev/full is absent";
  EXPECT_THROW(write_file("/dev/full", "x"), IoError);
}

TEST(BoundedQueue, ElementsArriveInOrderThenTheError) {
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) queue.push(i);
    queue.fail(std::make_exception_ptr(DataError("bad record")));
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_THROW(queue.pop(), DataError);
  producer.join();
}

TEST(BoundedQueue, CloseWakesABlockedProducer) {
  BoundedQueue<int> queue(1);
  queue.push(1);
  std::thread producer([&] { EXPECT_FALSE(queue.push(2)); });
  queue.close();
  producer.join();
}

}  // namespace
}  // namespace t5x
