"""Parts of a date from its days since 1970-01-01, by arithmetic alone: one formula for Python and all exports."""

# A date column gives its days (the time elapsed) and these parts of the calendar.
PARTS = ("month", "day", "weekday", "hour")


def part_of_date(part, days, floor):
    """Days since 1970-01-01 themselves ("days"), or a part of the date.

    Month and day count from 1, the weekday from 0 (Monday); the hour has a fraction. Exporters pass days that write
    the four operations down, and `floor` is that of their type.
    """
    if part == "days":
        return days
    whole = floor(days)
    if part == "hour":
        return (days - whole) * 24.0
    if part == "weekday":
        since = whole + 3.0  # 1970-01-01 was a Thursday
        return since - floor(since / 7.0) * 7.0
    # In years that begin in March, the day of the year alone says the month: leap days come last.
    since = whole + 719468.0  # since 0000-03-01
    cycle = since - floor(since / 146097.0) * 146097.0  # days in 400 years
    leap = floor(cycle / 36524.0) - floor(cycle / 1460.0) - floor(cycle / 146096.0)
    year = floor((cycle + leap) / 365.0)
    day = cycle - (year * 365.0 + floor(year / 4.0) - floor(year / 100.0))
    month = floor((day * 5.0 + 2.0) / 153.0)
    if part == "day":
        return day - floor((month * 153.0 + 2.0) / 5.0) + 1.0
    return month + 3.0 - floor(month / 10.0) * 12.0
