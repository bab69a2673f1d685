"""What a page in a browser shows, and its controls as a person sets them."""


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).innerText", selector).strip()


def texts(browser, selector):
    return [
        each.strip()
        for each in browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector
        )
    ]


def rows_of(browser, selector):
    """The cells of a table's body."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText.trim()))",
        selector,
    )


def put(browser, name, value):
    """Set a control as a person does."""
    browser.execute_script(
        "const each = document.getElementById(arguments[0]);"
        "each[each.type === 'checkbox' ? 'checked' : 'value'] = arguments[1];"
        "each.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        value,
    )


def every_row(browser):
    """The rows of all pages of the table of targets."""
    found = rows_of(browser, "section[aria-labelledby=targets-title]")
    while browser.execute_script("return !document.getElementById('after').disabled"):
        browser.execute_script("document.getElementById('after').click()")
        found += rows_of(browser, "section[aria-labelledby=targets-title]")
    return found
