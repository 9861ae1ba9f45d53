#include "pjrt/buffer.h"

#include "pjrt/testing/programs.h"

namespace t5x::pjrt {
namespace {

using testing::HasSubstr;

class BufferOfDType : public testing::TestWithParam<DType> {};
TEST_P(BufferOfDType, RoundTripsToTheHost) {
  Array array = Array::uninitialized(GetParam(), Shape{3, 5});
  for (size_t i = 0; i < array.nbytes(); ++i)
    array.bytes()[i] = static_cast<std::byte>(GetParam() == DType::kBool ? i % 2 : i);
  const Buffer buffer = test_client().to_device(array, 1);
  EXPECT_EQ(buffer.spec(), (TensorSpec{GetParam(), Shape{3, 5}}));
  EXPECT_EQ(buffer.device(), 1U);
  EXPECT_TRUE(buffer.to_host().identical(array));
}
INSTANTIATE_TEST_SUITE_P(All, BufferOfDType,
                         testing::Values(DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt16,
                                         DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64,
                                         DType::kUInt64, DType::kBFloat16, DType::kFloat16, DType::kFloat32,
                                         DType::kFloat64),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST(Buffer, EmptyArrayRoundTrips) {
  const Array array(DType::kFloat32, Shape{0, 3});
  EXPECT_EQ(test_client().to_device(array).to_host().shape(), (Shape{0, 3}));
}

TEST(Buffer, ScalarRoundTrips) {
  EXPECT_EQ(test_client().to_device(Array::scalar<int32_t>(-7)).to_host().item<int32_t>(), -7);
}

TEST(Buffer, ZeroCopyUsesTheHostBytes) {
  const Array array = iota(1024);
  const Buffer buffer = test_client().to_device(array, 0, HostTransfer::kZeroCopy);
  EXPECT_EQ(buffer.address(), reinterpret_cast<uintptr_t>(array.bytes()));
}

TEST(Buffer, ZeroCopyKeepsTheHostArrayAlive) {
  Buffer buffer;
  {
    const Array array = iota(1 << 16);
    buffer = test_client().to_device(array, 0, HostTransfer::kZeroCopy);
  }
  EXPECT_TRUE(buffer.to_host().identical(iota(1 << 16)));
}

TEST(Buffer, ZeroCopyOfUnalignedBytesCopies) {
  Array owner = iota(1025);
  const Array view =
      Array::view(DType::kFloat32, Shape{1024}, owner.bytes() + 4, std::make_shared<Array>(owner));
  const Buffer buffer = test_client().to_device(view, 0, HostTransfer::kZeroCopy);
  EXPECT_NE(buffer.address(), reinterpret_cast<uintptr_t>(view.bytes()));
  EXPECT_TRUE(buffer.to_host().identical(iota(1024, 1)));
}

TEST(Buffer, CopyIsIndependentOfTheHostArray) {
  Array array = iota(1024);
  const Buffer buffer = test_client().to_device(array);
  buffer.await();
  array.values<float>()[0] = 99;
  EXPECT_EQ(buffer.to_host().values<float>()[0], 0);
}

TEST(Buffer, CopiesToAnotherDevice) {
  const Buffer buffer = test_client().to_device(iota(16));
  const Buffer copy = buffer.copy_to(2);
  EXPECT_EQ(copy.device(), 2U);
  EXPECT_TRUE(copy.to_host().identical(iota(16)));
}

TEST(Buffer, MissingDeviceThrows) {
  EXPECT_THAT(message_of<DeviceError>([] { test_client().to_device(iota(4), 4); }),
              HasSubstr("there is no device 4"));
}

TEST(Buffer, TooLargeForTheMachineThrows) {
#ifdef T5X_SANITIZED
  GTEST_SKIP() << "the sanitizers' allocators end the process where malloc returns null";
#endif
  // A view that claims far more than any machine has; the plugin must refuse before it reads.
  Array owner = iota(4);
  const Array huge = Array::view(DType::kFloat32, Shape{int64_t{1} << 50}, owner.bytes() + 4, nullptr);
  EXPECT_THROW(test_client().to_device(huge), DeviceError);
}

TEST(Buffer, UseAfterRemoveSaysSo) {
  Buffer buffer = test_client().to_device(iota(4));
  buffer.remove();
  EXPECT_TRUE(buffer.is_deleted());
  EXPECT_THAT(message_of<DeviceError>([&] { buffer.to_host(); }), HasSubstr("was removed"));
}

TEST(Buffer, UseAfterMoveSaysSo) {
  Buffer buffer = test_client().to_device(iota(4));
  const Buffer other = std::move(buffer);
  EXPECT_THAT(message_of<DeviceError>([&] { buffer.await(); }), HasSubstr("moved from"));  // NOLINT
}

TEST(Buffer, OutlivesItsClient) {
  Buffer buffer;
  {
    const Client client = Client::create();
    buffer = client.to_device(iota(8));
  }
  EXPECT_TRUE(buffer.to_host().identical(iota(8)));
}

}  // namespace
}  // namespace t5x::pjrt
