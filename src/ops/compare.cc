// Comparisons and choices.
#include "graph/basic.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x {
namespace {

using ops::Tensors;

const Primitive kCompare{
    .name = "stablehlo.compare",
    .infer =
        [](const InferContext& c) {
          return std::vector<TensorType>{{DType::kBool, ops::check_elementwise(c, ops::kAny).shape}};
        },
    .vjp = no_gradient};

Tensor compare(const char* direction, Tensor a, Tensor b) {
  const char* kind = is_float(a.dtype()) ? "FLOAT" : is_signed_integer(a.dtype()) ? "SIGNED" : "UNSIGNED";
  return apply(
      {.primitive = kCompare,
       .inputs = {a, b},
       .attributes = {
           {"comparison_direction", MlirText{fmt::format("#stablehlo<comparison_direction {}>", direction)}},
           {"compare_type", MlirText{fmt::format("#stablehlo<comparison_type {}>", kind)}}}});
}

Tensor compare_promoted(const char* direction, Tensor a, Tensor b) {
  return ops::in_operation("stablehlo.compare", [&] {
    const auto [x, y] = ops::promoted(a, b);
    return compare(direction, x, y);
  });
}

Tensor compare_number(const char* direction, Tensor a, double b) {
  return compare(direction, a, ops::number_like(a, b));
}

const Primitive kSelect{
    .name = "stablehlo.select",
    .infer =
        [](const InferContext& c) {
          const TensorType &condition = c.inputs[0], &on_true = c.inputs[1], &on_false = c.inputs[2];
          if (condition.dtype != DType::kBool)
            throw_error<ShapeError>("expected a bool condition, got {}", condition.describe());
          if (on_true != on_false)
            throw_error<ShapeError>("expected alternatives of one type, got {} and {}", on_true.describe(),
                                    on_false.describe());
          if (condition.shape.rank() != 0 && condition.shape != on_true.shape)
            throw_error<ShapeError>("expected a condition of the alternatives' shape {} or a scalar, got {}",
                                    on_true.shape.to_string(), condition.shape.to_string());
          return std::vector<TensorType>{on_true};
        },
    .vjp =
        [](const VjpContext& c) {
          const Tensor g = c.cotangent();
          Tensors gradients(3);
          if (c.wanted[1]) gradients[1] = ops::select(c.inputs[0], g, 0.0);
          if (c.wanted[2]) gradients[2] = ops::select(c.inputs[0], 0.0, g);
          return gradients;
        }};

const Primitive kClamp{.name = "stablehlo.clamp",
                       .infer =
                           [](const InferContext& c) {
                             const TensorType& x = c.inputs[1];
                             if (x.dtype == DType::kBool)
                               throw_error<ShapeError>("expected integer or float operands, got {}",
                                                       x.describe());
                             return std::vector<TensorType>{x};
                           },
                       .vjp =
                           [](const VjpContext& c) {
                             // Nothing passes at the bounds themselves, as in jax.lax.clamp.
                             const Tensor x = c.inputs[1];
                             const Tensor inside = ops::bit_and(x > c.inputs[0], x < c.inputs[2]);
                             return Tensors{{}, ops::select(inside, c.cotangent(), 0.0), {}};
                           }};

}  // namespace

Tensor operator==(Tensor a, Tensor b) { return compare_promoted("EQ", a, b); }
Tensor operator!=(Tensor a, Tensor b) { return compare_promoted("NE", a, b); }
Tensor operator<(Tensor a, Tensor b) { return compare_promoted("LT", a, b); }
Tensor operator<=(Tensor a, Tensor b) { return compare_promoted("LE", a, b); }
Tensor operator>(Tensor a, Tensor b) { return compare_promoted("GT", a, b); }
Tensor operator>=(Tensor a, Tensor b) { return compare_promoted("GE", a, b); }
Tensor operator==(Tensor a, double b) { return compare_number("EQ", a, b); }
Tensor operator!=(Tensor a, double b) { return compare_number("NE", a, b); }
Tensor operator<(Tensor a, double b) { return compare_number("LT", a, b); }
Tensor operator<=(Tensor a, double b) { return compare_number("LE", a, b); }
Tensor operator>(Tensor a, double b) { return compare_number("GT", a, b); }
Tensor operator>=(Tensor a, double b) { return compare_number("GE", a, b); }

namespace ops {

Tensor select(Tensor condition, Tensor on_true, Tensor on_false) {
  return in_operation("stablehlo.select", [&] {
    auto [yes, no] = promoted(on_true, on_false);
    if (condition.rank() != 0) {
      const Shape shape = broadcast_shapes(condition.shape(), yes.shape());
      condition = broadcast_to(condition, shape);
      yes = broadcast_to(yes, shape);
      no = broadcast_to(no, shape);
    }
    return apply({.primitive = kSelect, .inputs = {condition, yes, no}});
  });
}

Tensor select(Tensor condition, Tensor on_true, double on_false) {
  return select(condition, on_true, number_like(on_true, on_false));
}
Tensor select(Tensor condition, double on_true, Tensor on_false) {
  return select(condition, number_like(on_false, on_true), on_false);
}

Tensor clamp(double low, Tensor x, double high) {
  if (!(low <= high)) {
    in_operation("stablehlo.clamp", [&] {
      throw_error<ShapeError>("expected bounds in ascending order, got {} and {}", low, high);
    });
  }
  return apply({.primitive = kClamp, .inputs = {number_like(x, low), x, number_like(x, high)}});
}

}  // namespace ops
}  // namespace t5x
