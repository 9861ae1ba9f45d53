// The operations that model code is written with: the public face of this folder. Names and meaning follow
// jax.lax, jax.numpy and StableHLO. Operands of elementwise operations broadcast as NumPy's do; two float
// types promote to the wider one, an integer with a float to the float; a C++ number takes the dtype of the
// tensor beside it.
#pragma once

#include "graph/basic.h"
#include "ops/control.h"
#include "ops/dot.h"
#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/sharding.h"
#include "ops/sort.h"
