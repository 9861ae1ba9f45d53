#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/primitive.h"
#include "graph/stablehlo.h"
#include "graph/trace.h"

namespace t5x {
namespace {

const TensorType kVector{DType::kFloat32, {4}};

TEST(Trace, PrintsGenericFormWithLocations) {
  auto graph = trace({kVector}, [](const std::vector<Tensor>& args) {
    NameScope scope("encoder");
    return std::vector<Tensor>{add_any(args[0], full(kVector, 1.0))};
  });
  const std::string text = to_stablehlo(*graph);
  EXPECT_NE(
      text.find(
          "\"stablehlo.add\"(%arg0, %0) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) loc(#loc1)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("#loc1 = loc(\"encoder\")"), std::string::npos);
}

TEST(Trace, TypesStayWhereTheyAreWhileTheGraphGrows) {
  trace({kVector}, [](const std::vector<Tensor>& args) {
    const Shape& shape = args[0].shape();
    for (int i = 0; i < 1000; ++i) add_any(args[0], args[0]);
    EXPECT_EQ(&shape, &args[0].shape());
    return args;
  });
}

TEST(Trace, NodesThatNoOutputNeedsAreNotPrinted) {
  auto graph = trace({kVector}, [](const std::vector<Tensor>& args) {
    add_any(args[0], args[0]);
    return std::vector<Tensor>{args[0]};
  });
  EXPECT_EQ(to_stablehlo(*graph).find("stablehlo.add"), std::string::npos);
}

TEST(Trace, ErrorNamesOperationAndModule) {
  try {
    trace({kVector, {DType::kFloat32, {5}}}, [](const std::vector<Tensor>& args) {
      NameScope outer("encoder"), inner("layers_0");
      return std::vector<Tensor>{add_any(args[0], args[1])};
    });
    FAIL();
  } catch (const ShapeError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("float32(4), float32(5)"), std::string::npos) << what;
    EXPECT_NE(what.find("in encoder/layers_0"), std::string::npos) << what;
  }
}

TEST(Trace, TensorOfAnEndedTraceThrows) {
  Tensor leaked;
  auto first = trace({kVector}, [&](const std::vector<Tensor>& args) {
    leaked = args[0];
    return args;
  });
  EXPECT_THROW(
      trace({kVector},
            [&](const std::vector<Tensor>& args) { return std::vector<Tensor>{add_any(args[0], leaked)}; }),
      InternalError);
}

TEST(Trace, RegionCapturesOuterTensorOnce) {
  trace({kVector}, [](const std::vector<Tensor>& args) {
    Region region = trace_region({kVector}, [&](const std::vector<Tensor>& inner) {
      return std::vector<Tensor>{add_any(add_any(inner[0], args[0]), args[0])};
    });
    EXPECT_EQ(region.captures.size(), 1u);
    EXPECT_EQ(region.graph->args().size(), 2u);
    return args;
  });
}

TEST(Grad, CotangentOfAnotherTypeThrows) {
  EXPECT_THROW(trace({kVector},
                     [](const std::vector<Tensor>& args) {
                       return vjp({args[0]}, {full({DType::kFloat32, {5}}, 1.0)}, {args[0]});
                     }),
               ShapeError);
}

TEST(Grad, InputThatDoesNotMatterGetsZeros) {
  auto graph = trace({kVector, kVector}, [](const std::vector<Tensor>& args) {
    return vjp({args[0]}, {full(kVector, 1.0)}, {args[1]});
  });
  EXPECT_NE(to_stablehlo(*graph).find("dense<0x00000000>"), std::string::npos);
}

}  // namespace
}  // namespace t5x
