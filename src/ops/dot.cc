#include "ops/dot.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/basic.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

struct DotExtra {
  DotDims dims;
  DType result;
};

bool contains(const Dims& dims, int64_t axis) {
  return std::find(dims.begin(), dims.end(), axis) != dims.end();
}

// The axes that are neither batch nor contracted, ascending.
Dims free_axes(size_t rank, const Dims& batch, const Dims& contracting) {
  Dims axes;
  for (int64_t axis : axes_of(rank)) {
    if (!contains(batch, axis) && !contains(contracting, axis)) axes.push_back(axis);
  }
  return axes;
}

void check_axes(const Dims& batch, const Dims& contracting, const Shape& shape, const char* side) {
  Dims all = batch;
  all.insert(all.end(), contracting.begin(), contracting.end());
  std::sort(all.begin(), all.end());
  const bool unique = std::adjacent_find(all.begin(), all.end()) == all.end();
  const bool inside = all.empty() || (all.front() >= 0 && all.back() < static_cast<int64_t>(shape.rank()));
  if (!unique || !inside)
    throw_error<ShapeError>(
        "expected distinct axes of the {} {} below {}, got batch [{}] and contracting [{}]", side,
        shape.to_string(), shape.rank(), fmt::join(batch, ", "), fmt::join(contracting, ", "));
}

void check_pairs(const Dims& lhs, const Dims& rhs, const Shape& a, const Shape& b, const char* kind) {
  if (lhs.size() != rhs.size())
    throw_error<ShapeError>("expected as many {} axes left as right, got [{}] and [{}]", kind,
                            fmt::join(lhs, ", "), fmt::join(rhs, ", "));
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (a.dim(lhs[i]) != b.dim(rhs[i]))
      throw_error<ShapeError>("{} axes {} and {} differ in size: {} and {}", kind, lhs[i], rhs[i],
                              a.dim(lhs[i]), b.dim(rhs[i]));
  }
}

std::vector<TensorType> infer_dot(const InferContext& c) {
  const auto& [d, result] = std::any_cast<const DotExtra&>(c.extra);
  const TensorType &lhs = c.inputs[0], &rhs = c.inputs[1];
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::kBool)
    throw_error<ShapeError>("expected two integer or two float operands of one dtype, got {} and {}",
                            lhs.describe(), rhs.describe());
  check_axes(d.lhs_batch, d.lhs_contracting, lhs.shape, "left operand");
  check_axes(d.rhs_batch, d.rhs_contracting, rhs.shape, "right operand");
  check_pairs(d.lhs_batch, d.rhs_batch, lhs.shape, rhs.shape, "batch");
  check_pairs(d.lhs_contracting, d.rhs_contracting, lhs.shape, rhs.shape, "contracting");
  Dims dims;
  for (int64_t axis : d.lhs_batch) dims.push_back(lhs.shape.dim(axis));
  for (int64_t axis : free_axes(lhs.shape.rank(), d.lhs_batch, d.lhs_contracting))
    dims.push_back(lhs.shape.dim(axis));
  for (int64_t axis : free_axes(rhs.shape.rank(), d.rhs_batch, d.rhs_contracting))
    dims.push_back(rhs.shape.dim(axis));
  return {{result, Shape(dims)}};
}

// contracting_here sorted by where its partner lies, which is the order in which a product leaves them.
Dims by_partner(const Dims& here, const Dims& partner) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < here.size(); ++i) pairs.emplace_back(partner[i], here[i]);
  std::sort(pairs.begin(), pairs.end());
  Dims out;
  for (const auto& [unused, axis] : pairs) out.push_back(axis);
  return out;
}

// The gradient of one operand ("this") from that of the result and the other operand. `free_at` is where the
// other operand's free axes begin in the result.
Tensor operand_gradient(Tensor g, Tensor other, size_t this_rank, const Dims& this_batch,
                        const Dims& this_contracting, const Dims& other_batch, const Dims& other_contracting,
                        size_t free_at) {
  const Dims other_free = free_axes(other.rank(), other_batch, other_contracting);
  const Tensor product = dot_general(g, other,
                                     {.lhs_batch = axes_of(this_batch.size()),
                                      .rhs_batch = other_batch,
                                      .lhs_contracting = axes_of(other_free.size(), free_at),
                                      .rhs_contracting = other_free});
  // The product's axes, as axes of this operand.
  Dims order = this_batch;
  for (const Dims& more :
       {free_axes(this_rank, this_batch, this_contracting), by_partner(this_contracting, other_contracting)})
    order.insert(order.end(), more.begin(), more.end());
  Dims permutation(this_rank);
  for (size_t i = 0; i < order.size(); ++i)
    permutation[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return transpose(product, permutation);
}

Tensors vjp_dot(const VjpContext& c) {
  const DotDims d = std::any_cast<const DotExtra&>(c.node.extra).dims;
  const Tensor lhs = c.inputs[0], rhs = c.inputs[1];
  const Tensor g = convert(c.cotangent(), lhs.dtype());
  const size_t batch = d.lhs_batch.size();
  const size_t lhs_free = lhs.rank() - batch - d.lhs_contracting.size();
  Tensors gradients(2);
  if (c.wanted[0])
    gradients[0] = operand_gradient(g, rhs, lhs.rank(), d.lhs_batch, d.lhs_contracting, d.rhs_batch,
                                    d.rhs_contracting, batch + lhs_free);
  if (c.wanted[1])
    gradients[1] = operand_gradient(g, lhs, rhs.rank(), d.rhs_batch, d.rhs_contracting, d.lhs_batch,
                                    d.lhs_contracting, batch);
  return gradients;
}

const Primitive kDotGeneral{.name = "stablehlo.dot_general", .infer = infer_dot, .vjp = vjp_dot};

// How a product a [m, k] times the transpose of b [n, k] is written.
enum class TransposedForm {
  kContractLast,      // [1]x[1], as differentiation by the book gives
  kTransposeThenRow,  // transpose(b) behind a barrier, then [1]x[0]
};
// For the gradient of a dense layer's input. In bfloat16 only row-major [1]x[0] reaches the CPU's peak.
TransposedForm input_gradient_form(DType dtype) {
  return dtype == DType::kBFloat16 ? TransposedForm::kTransposeThenRow : TransposedForm::kContractLast;
}

Tensor transposed_behind_barrier(Tensor x) { return optimization_barrier(transpose(x, {1, 0})); }
Tensor row_major_product(Tensor a, Tensor b);

// Dense products, two matrices contracted [1]x[0]. Measured on the CPU: the weight gradient transpose(x)
// times g runs at peak when the transpose is materialised (the barrier keeps the compiler from folding it
// into the product), and at a third to four fifths of it in every other form.
Tensors vjp_matmul(const VjpContext& c) {
  const Tensor x = c.inputs[0], w = c.inputs[1], g = convert(c.cotangent(), x.dtype());
  Tensors gradients(2);
  if (c.wanted[0]) {
    gradients[0] = input_gradient_form(g.dtype()) == TransposedForm::kTransposeThenRow
                       ? row_major_product(g, transposed_behind_barrier(w))
                       : dot_general(g, w, {{}, {}, {1}, {1}});
  }
  if (c.wanted[1]) gradients[1] = row_major_product(transposed_behind_barrier(x), g);
  return gradients;
}

const Primitive kMatmul{.name = "stablehlo.dot_general", .infer = infer_dot, .vjp = vjp_matmul};

std::string spell(const DotDims& d) {
  return fmt::format(
      "#stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], "
      "lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>",
      fmt::join(d.lhs_batch, ", "), fmt::join(d.rhs_batch, ", "), fmt::join(d.lhs_contracting, ", "),
      fmt::join(d.rhs_contracting, ", "));
}

Tensor apply_dot(const Primitive& primitive, Tensor a, Tensor b, const DotDims& dims, DType result) {
  return apply({.primitive = primitive,
                .inputs = {a, b},
                .attributes = {{"dot_dimension_numbers", MlirText{spell(dims)}}},
                .extra = DotExtra{dims, result}});
}

Tensor row_major_product(Tensor a, Tensor b) {
  return apply_dot(kMatmul, a, b, {{}, {}, {1}, {0}}, a.dtype());
}

}  // namespace

bool is_unbatched_dot(const Node& node) {
  const auto* extra = std::any_cast<DotExtra>(&node.extra);
  return extra != nullptr && extra->dims.lhs_batch.empty();
}

Tensor dot_general(Tensor lhs, Tensor rhs, const DotDims& dims, std::optional<DType> result) {
  return in_operation("dot_general", [&] {
    const DType dtype = promote(lhs.dtype(), rhs.dtype());
    return apply_dot(kDotGeneral, convert(lhs, dtype), convert(rhs, dtype), dims, result.value_or(dtype));
  });
}

Tensor matmul(Tensor x, Tensor w) {
  return in_operation("matmul", [&] {
    if (x.rank() == 0 || w.rank() != 2 || x.dim(-1) != w.dim(0))
      throw_error<ShapeError>("expected [..., k] times [k, n], got {} and {}", x.type().describe(),
                              w.type().describe());
    const DType dtype = promote(x.dtype(), w.dtype());
    Dims dims = x.shape().dims();
    dims.back() = w.dim(1);
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
    const Tensor flat = reshape(convert(x, dtype), {rows, x.dim(-1)});
    return reshape(row_major_product(flat, convert(w, dtype)), dims);
  });
}

}  // namespace t5x::ops
