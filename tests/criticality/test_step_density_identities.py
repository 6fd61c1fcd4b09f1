"""Identities behind the laws of steps, by SymPy: changes of variable, speeds, folds and poles; five printed forms that
fail."""

import sympy as sp

X, W, B, T, Y, GAMMA = (*sp.symbols("x w b t y", real=True), sp.Symbol("gamma", positive=True))
LOGIT = W * X + B


def length(slope):
    """The signed amplitude s(x) of a loss with the slope h(y)."""
    return -GAMMA * slope.subs(Y, LOGIT) * sp.sqrt(1 + X**2)


def numerator(step):
    """d|q̇|²/2dx for ẇ = xḃ."""
    return X * step * sp.diff(X * step, X) + step * sp.diff(step, X)


def zero(expression):
    return sp.simplify(expression) == 0


def test_laws_of_the_bias_step_are_changes_of_variable():
    v = sp.Symbol("v", positive=True)
    m, tau, n = sp.symbols("m", real=True), sp.Symbol("tau", positive=True), sp.Symbol("n", positive=True)
    law = sp.Function("p", positive=True)  # of the logit

    # class 0 of sigmoid + cross-entropy: v = f(y), dv/dy = v(1 - v)
    f = 1 / (1 + sp.exp(-Y))
    assert zero(sp.diff(f, Y) - f * (1 - f)) and zero(f.subs(Y, sp.log(v / (1 - v))) - v)
    # sigmoid + squared: |h| = 2f²(1 - f), d|h|/df = 4f - 6f² with the edge 8/27 at f = 2/3
    q = sp.Symbol("f")
    assert sp.solve(sp.diff(2 * q**2 * (1 - q), q), q) == [0, sp.Rational(2, 3)]
    assert zero(sp.diff(2 * q**2 * (1 - q), q) - (4 * q - 6 * q**2)) and (2 * q**2 * (1 - q)).subs(
        q, sp.Rational(2, 3)
    ) == sp.Rational(8, 27)
    assert zero(sp.diff(f**2, Y) - 2 * f**2 * (1 - f)) and zero(sp.diff((f - 1) ** 2, Y) + 2 * f * (1 - f) ** 2)
    # ReLU + power n: y = t ± (v/n)^{1/(n-1)}, |dy/dv| = (v/n)^{1/(n-1)}/((n-1)v)
    root = (v / n) ** (1 / (n - 1))
    assert zero(sp.diff(root, v) * (n - 1) * v / root - 1) and zero(
        sp.powdenest(n * root ** (n - 1) / v, force=True) - 1
    )
    # clip + cross-entropy: y = 1 - 1/v in class 0 and 1/v in class 1, |dy/dv| = 1/v²
    assert zero(1 / (1 - (1 - 1 / v)) - v) and zero(sp.diff(1 - 1 / v, v) - v**-2) and zero(sp.diff(1 / v, v) + v**-2)
    # pure exponential: ln(|ḃ|/γ|c|) = cy, so k = 1 + (ln v - cm)/(cτ)²
    c = sp.Symbol("c", positive=True)
    log_density = -((sp.log(v) / c - m) ** 2) / (2 * tau**2) - sp.log(c * v)
    assert zero(-v * sp.diff(log_density, v) - 1 - (sp.log(v) - c * m) / (c * tau) ** 2)
    assert zero(sp.diff(sp.log(law(1 - 1 / v) / v**2), v) * v - (law(1 - 1 / v).diff(v) / law(1 - 1 / v) * v - 2))


def test_speeds_and_folds_of_the_exponential_the_line_and_the_clip():
    c = sp.Symbol("c", real=True)
    pure = length(c * sp.exp(c * Y))
    assert zero(sp.diff(pure, X) / pure - c * W - X / (1 + X**2))
    assert sp.solveset(sp.diff(X / (1 + X**2), X), X, sp.S.Reals) == {
        -1,
        1,
    }  # where x/(1+x²) = ±1/2: one-to-one iff |cw| ≥ 1/2

    line = length(2 * (Y - T))
    speed = -2 * GAMMA * (W * (1 + X**2) + X * (LOGIT - T)) / sp.sqrt(1 + X**2)
    assert zero(sp.diff(line, X) - speed)
    folds = sp.expand(-speed * sp.sqrt(1 + X**2) / (2 * GAMMA))
    assert zero(folds - (2 * W * X**2 + (B - T) * X + W))
    assert zero(sp.discriminant(folds, X) - ((B - T) ** 2 - 8 * W**2))  # none iff |b - t| < 2√2|w|
    assert zero(speed.subs({B: 0, T: 0}) + 2 * GAMMA * W * (1 + 2 * X**2) / sp.sqrt(1 + X**2))  # (8.32)

    clip = length(1 / (1 - Y))
    speed = -GAMMA * (W + (1 - B) * X) / ((1 - LOGIT) ** 2 * sp.sqrt(1 + X**2))
    assert zero(sp.diff(clip, X) - speed) and zero(speed.subs(X, -W / (1 - B)))  # the fold
    pole = (1 - B) / W
    assert zero(
        sp.limit(sp.simplify((clip**2 / speed) ** 2), X, pole) - GAMMA**2 * (1 + pole**2) / W**2
    )  # s²p_s → p_x γ√(1+x*²)/|w|
    other = length(-1 / Y)
    assert zero(
        sp.limit(sp.simplify((other**2 / sp.diff(other, X)) ** 2), X, -B / W) - GAMMA**2 * (1 + (B / W) ** 2) / W**2
    )


def test_printed_forms_that_are_wrong_do_not_simplify_to_zero():
    tail = -2 * GAMMA * sp.exp(2 * LOGIT)  # (8.10), ḃ of H = e^{2y}
    by_loss = -GAMMA * sp.diff(sp.exp(2 * Y), Y).subs(Y, LOGIT)
    assert zero(by_loss - tail) and not zero(by_loss + 2 * GAMMA * sp.exp(LOGIT))

    line = -2 * GAMMA * (LOGIT - T)  # (8.31)
    right = X * line**2 - 2 * GAMMA * W * X**2 * line - 2 * GAMMA * W * line
    printed = X * line**2 - 2 * GAMMA * W * X**2 * line**2 - 2 * GAMMA * W * line
    assert zero(numerator(line) - right) and not zero(numerator(line) - printed)

    pole = -GAMMA / (1 - LOGIT)  # (8.41), second line: three terms of one sign
    terms = X * pole**2, W * X**2 * pole**2 / (1 - LOGIT), W * pole**2 / (1 - LOGIT)
    assert zero(numerator(pole) - sum(terms)) and all(
        not zero(numerator(pole) - sum(terms) + 2 * term) for term in terms
    )

    a, k, one, two = (
        *sp.symbols("a k"),
        *sp.symbols("c_1 c_2", positive=True),
    )  # (7.12): C = -(Ab + B)^{1/(1-k)}, B = aA
    values = {B: 2, a: sp.Rational(7, 10), one: sp.Rational(2, 5), two: sp.Rational(13, 10), k: sp.Rational(3, 10)}
    scale = two * (B / (1 - k) + one) ** (1 - k)  # (7.9)
    exact, shape = -((scale * (a + B)) ** (1 / (1 - k))), -((a + B) ** (1 / (1 - k))) * (B / (1 - k) + one)
    assert abs(sp.N((exact - two ** (1 / (1 - k)) * shape).subs(values), 30)) < 1e-25
    assert abs(sp.N((exact - two ** (1 - k) * shape).subs(values), 30)) > 3

    to_bias = 1 / X  # (9.15): ḃ/ẇ for x far from x̄; exact is w/(y - b)
    assert zero(W / (LOGIT - B) - to_bias)
    far = [sp.limit(form / to_bias, X, sp.oo) for form in (W / (LOGIT - T), 1 / (W * (LOGIT + T)))]
    assert far[0] == 1 and zero(far[1] - W**-2) and not zero(far[1] - 1)
    assert zero(sp.sqrt(1 + (W / (LOGIT - T)) ** 2) - sp.sqrt(1 + (X - (T - B) / W) ** -2))
