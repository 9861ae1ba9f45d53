// Small programs and a client that the tests of this folder share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "pjrt/client.h"

namespace t5x::pjrt {

// One client with four virtual devices for the whole process.
inline Client& test_client() {
  static Client client = Client::create({.cpu_device_count = 4});
  return client;
}

inline ArgumentSpec argument(Shape shape, bool donated = false, DType dtype = DType::kFloat32) {
  return {.spec = {dtype, std::move(shape)}, .donated = donated};
}

// f32[4] + f32[4]
inline const char* const kAdd = R"(module @add {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }
})";

// The same over f32[1024], writing the sum over the first argument.
inline const char* const kAddInPlace = R"(module @add_in_place {
  func.func public @main(%a: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<1024xf32>)
      -> tensor<1024xf32> {
    %0 = "stablehlo.add"(%a, %b) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    "func.return"(%0) : (tensor<1024xf32>) -> ()
  }
})";

inline Array iota(int64_t size, float first = 0) {
  Array out(DType::kFloat32, Shape{size});
  for (float& x : out.values<float>()) x = first++;
  return out;
}

// Runs `body` and returns the message of the E it must throw.
template <class E, class F>
std::string message_of(F&& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace t5x::pjrt
